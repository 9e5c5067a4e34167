// Package audit keeps the entries of a coordinator's audit: the changes that it has
// followed in the store, and the requests that it has refused itself. It notes changes
// that this coordinator writes, keeps refusals in files that turn over by size, and
// answers questions. It does not decide who may read an entry (coordinator/service does).
package audit
