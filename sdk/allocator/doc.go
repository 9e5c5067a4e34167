// Package allocator is the short Go client of the API's own design: allocations
// with their name at the top, a number as priority, and watches as a channel. It
// is written so that the example of that design compiles. Package sdk is the
// whole client; each type here becomes one of package api by one function, so
// both clients send and show the same objects (docs/adr/0037).
package allocator
