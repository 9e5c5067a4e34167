// Package follow keeps a coordinator's cache of the store: it loads all keys,
// follows the store's watch, loads anew after a compaction or after the store
// went back to a backup, and feeds coordinator/objects. Reads wait here until
// the cache has everything that was acknowledged before them. Its cache is also
// the start of the coordinator's next term.
package follow
