/**
 * Plans which rooms are used by which courses.
 *
 * The planner is deliberately simple: it sorts courses by size and gives each of them the
 * smallest room that is free. For a school of ordinary size that is within two per cent of the
 * optimum, and people understand the result.
 */

import { readFile } from "node:fs/promises";
import { EventEmitter } from "node:events";

/** Days on which there are lessons. */
export const DAYS = ["mon", "tue", "wed", "thu", "fri"] as const;

export type Day = (typeof DAYS)[number];

/** A lesson's time, e.g. the third lesson on Tuesday. */
export interface Slot {
  day: Day;
  /** Counted from 1. */
  lesson: number;
}

export interface Room {
  id: string;
  seats: number;
  /** Equipment such as "beamer" or "sink". */
  features: ReadonlySet<string>;
}

export interface Course {
  id: string;
  title: string;
  students: number;
  slots: Slot[];
  needs: string[];
}

/** The room of a course in one slot. */
export type Assignment = { course: Course; slot: Slot; room: Room };

/** Thrown if no room is left. */
export class NoRoomError extends Error {
  constructor(
    readonly course: Course,
    readonly slot: Slot,
  ) {
    super(`no room for ${course.title} on ${slot.day}, lesson ${slot.lesson}`);
    this.name = "NoRoomError";
  }
}

// Slots are objects, and a Map compares objects by identity. Hence a string.
function keyOf(slot: Slot): string {
  return `${slot.day}:${slot.lesson}`;
}

/** Whether a room has everything that a course needs. */
export function isSuitable(room: Room, course: Course): boolean {
  return room.seats >= course.students && course.needs.every((need) => room.features.has(need));
}

/**
 * Assigns rooms to courses.
 *
 * Emits "assigned" for each assignment and "failed" for each course without a room.
 */
export class Planner extends EventEmitter {
  private readonly rooms: Room[];
  private readonly taken = new Map<string, Set<string>>();

  constructor(rooms: Iterable<Room>) {
    super();
    // the smallest first, so that large rooms stay free for large courses
    this.rooms = [...rooms].sort((a, b) => a.seats - b.seats);
  }

  /** The rooms that are free in a slot. */
  free(slot: Slot): Room[] {
    const taken = this.taken.get(keyOf(slot)) ?? new Set();
    return this.rooms.filter((room) => !taken.has(room.id));
  }

  /**
   * Finds a room for one course in one slot.
   *
   * @param course the course
   * @param slot one of the course's slots
   * @throws NoRoomError if no suitable room is free
   */
  assign(course: Course, slot: Slot): Assignment {
    const room = this.free(slot).find((candidate) => isSuitable(candidate, course));
    if (room === undefined) {
      this.emit("failed", course, slot);
      throw new NoRoomError(course, slot);
    }
    const key = keyOf(slot);
    if (!this.taken.has(key)) this.taken.set(key, new Set());
    this.taken.get(key)!.add(room.id);
    const assignment = { course, slot, room };
    this.emit("assigned", assignment);
    return assignment;
  }

  /** Plans all courses, the largest first, and returns what worked and what did not. */
  plan(courses: Course[]): { assignments: Assignment[]; failures: NoRoomError[] } {
    const assignments: Assignment[] = [];
    const failures: NoRoomError[] = [];
    for (const course of [...courses].sort((a, b) => b.students - a.students)) {
      for (const slot of course.slots) {
        try {
          assignments.push(this.assign(course, slot));
        } catch (error) {
          if (!(error instanceof NoRoomError)) throw error;
          failures.push(error);
        }
      }
    }
    return { assignments, failures };
  }
}

/** Reads rooms from a JSON file, as the administration exports it. */
export async function readRooms(path: string): Promise<Room[]> {
  const rows: { id: string; seats: number; features?: string[] }[] = JSON.parse(
    await readFile(path, "utf-8"),
  );
  return rows.map((row) => ({ ...row, features: new Set(row.features ?? []) }));
}
