"""What the strategies by meaning are made of: units, similarity, topics, entities, contexts."""
