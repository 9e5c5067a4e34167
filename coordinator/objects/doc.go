// Package objects is the projection of the store's keys to the objects that
// clients read: work, nodes, quotas, tenants, namespaces, access tokens and role
// bindings. Keys go in, values of package shown come out. Every object is made from its own keys alone, so two
// coordinators that have the same keys show the same objects.
//
// The package decides nothing and has no clock, goroutine or log. Package
// coordinator/follow feeds it from the store's watch.
package objects
