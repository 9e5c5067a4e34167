// Package audit tests the audit of a whole cluster in one process: each change leaves one
// entry with its person, at every door, and each refusal one entry of the coordinator.
package audit
