// Package health decides a GPU's next state after an event of it, or after a
// time without events: ok → suspect → tainted → probation → ok (DESIGN.md
// section 3; docs/health.md has the picture, docs/reference/health.md every row).
//
// It decides for one device at a time, from values alone: a Policy, the State
// so far, the time and a devices.Event. It does not find events, does not read
// a clock, does not know the grants of a device and ends no workload. A state
// holds nothing of other devices, so that a dead GPU cannot harm its siblings;
// an event of all devices at once (without a UUID) the caller passes to each.
//
// The rules, in the order of their weight:
//
//   - A program's own fault does not count, regardless of its number.
//   - A fault that the device survives, by the vendor's documents, makes it
//     suspect; it takes new work.
//   - A possible fault of the device makes it suspect too, and tainted when it
//     happens repeatedly.
//   - A fault that the device must not go on with, by the vendor's documents,
//     taints it at once, and where a reset is the cure, until a reset. A lost
//     device is tainted until it returns, one of a driver that is gone until
//     the driver is back.
//   - A device comes back by itself, through probation, in all cases but those
//     where a reset, a replacement or its return has to be awaited.
//   - Each relapse doubles the time that it has to wait, up to a bound; after a
//     quiet time the relapses are forgotten.
package health
