// Package lease hands out names for a limited time.
//
// A lease is a promise that nobody else uses a name until the lease ends. It is kept in memory
// only, so that a restart frees all names.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"
)

// ErrTaken is returned if somebody else holds the name.
var ErrTaken = errors.New("lease: name is taken")

// ErrExpired is returned when a lease is renewed too late.
var ErrExpired = errors.New("lease: lease has expired")

// DefaultTTL is used if the caller asks for no particular time.
const DefaultTTL = 30 * time.Second

// A Lease belongs to its holder until Until.
type Lease struct {
	// Name is what was leased.
	Name string

	// Holder identifies who holds the lease, for humans.
	Holder string

	// Until is the moment when the lease ends.
	Until time.Time

	token uint64
}

// Expired reports whether the lease has ended at the given moment.
func (l Lease) Expired(now time.Time) bool {
	return !now.Before(l.Until)
}

// String makes a lease readable in logs.
func (l Lease) String() string {
	return fmt.Sprintf("%s held by %s until %s", l.Name, l.Holder, l.Until.Format(time.RFC3339))
}

// Clock tells the time. Tests replace it.
type Clock interface {
	Now() time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// A Table holds all leases. The zero value is not usable; call NewTable.
type Table struct {
	mu     sync.Mutex
	leases map[string]Lease
	clock  Clock
	next   uint64
}

// NewTable returns an empty table. If clock is nil, the system's clock is used.
func NewTable(clock Clock) *Table {
	if clock == nil {
		clock = systemClock{}
	}
	return &Table{leases: make(map[string]Lease), clock: clock}
}

// Acquire leases a name.
//
// If the name is held by somebody else, it returns ErrTaken together with the lease in the way,
// so that the caller can say who holds it.
func (t *Table) Acquire(name, holder string, ttl time.Duration) (Lease, error) {
	if ttl <= 0 {
		ttl = DefaultTTL
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if current, ok := t.leases[name]; ok && !current.Expired(now) {
		return current, ErrTaken
	}
	t.next++
	lease := Lease{Name: name, Holder: holder, Until: now.Add(ttl), token: t.next}
	t.leases[name] = lease
	return lease, nil
}

// Renew extends a lease by ttl from now on.
func (t *Table) Renew(lease Lease, ttl time.Duration) (Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	current, ok := t.leases[lease.Name]
	if !ok || current.token != lease.token || current.Expired(now) {
		return Lease{}, ErrExpired
	}
	current.Until = now.Add(ttl)
	t.leases[lease.Name] = current
	return current, nil
}

// Release gives a name back. Releasing twice is not an error.
func (t *Table) Release(lease Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if current, ok := t.leases[lease.Name]; ok && current.token == lease.token {
		delete(t.leases, lease.Name)
	}
}

// List returns the leases that have not expired, sorted by name.
func (t *Table) List() []Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	leases := make([]Lease, 0, len(t.leases))
	for _, lease := range t.leases {
		if !lease.Expired(now) {
			leases = append(leases, lease)
		}
	}
	sort.Slice(leases, func(i, j int) bool { return leases[i].Name < leases[j].Name })
	return leases
}

// Hold acquires a name, renews it in the background and runs work. The context that work receives
// is cancelled when a renewal fails, for instance because the process was suspended.
func (t *Table) Hold(
	ctx context.Context,
	name, holder string,
	ttl time.Duration,
	work func(context.Context) error,
) error {
	lease, err := t.Acquire(name, holder, ttl)
	if err != nil {
		return fmt.Errorf("hold %q: %w", name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(ttl / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				// A failure here means that somebody else may own the name.
				if _, err := t.Renew(lease, ttl); err != nil {
					cancel()
					return
				}
			}
		}
	}()
	err = work(ctx)
	cancel()
	<-done
	t.Release(lease)
	return err
}
