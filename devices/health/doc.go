// Package health decides what a GPU's state becomes when something happens to
// it, or when nothing does for a while: ok → suspect → tainted → probation → ok
// (DESIGN.md section 3; docs/health.md has the picture and every table).
//
// It decides for one device at a time, from values alone: a Policy, the State
// so far, the time and a devices.Event. It does not find events, does not read
// a clock, does not know who holds a device and ends nobody's work. A state
// holds nothing of other devices, so that a dead GPU cannot harm its siblings;
// what the driver tells of all devices at once (an event without a UUID) the
// caller gives to each.
//
// The rules, in the order of their weight:
//
//   - What a program did wrong does not count, whatever its number.
//   - What the vendor says a device works on with makes it suspect; it takes
//     new work.
//   - What may be the device's fault makes it suspect too, and tainted when it
//     happens repeatedly.
//   - What the vendor says a device must not go on with taints it at once, and
//     where a reset is the cure, until a reset. A lost device is tainted until
//     it returns, one of a driver that is gone until the driver is back.
//   - A device comes back by itself, through probation, in all cases but those
//     where a reset, a replacement or its return has to be awaited.
//   - Each relapse doubles what it has to wait, up to a bound; a quiet time
//     makes that forgotten.
package health
