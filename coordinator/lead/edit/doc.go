// Package edit decides the changes of the objects that operators write and that
// nothing else changes: tenants, namespaces, names of resources, queues, priority classes,
// quota forests and quota bindings. A
// change is judged by the objects that it will meet, and becomes a Write or a
// refusal. Package edit does not decide the effect of an object on work, and it
// writes nothing: the leader carries a Write out and takes it over once it is
// durable.
//
// A new kind is one file with its Kind (see forest.go), and one row in New.
//
// Pure: no clock, no I/O, no goroutine, no log.
package edit
