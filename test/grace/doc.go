// Package grace tests the instant at which the devices of unattached work are free: the
// end of a written grace, else at once. Its clusters are in memory, on
// virtual time; the graces of attached work and of commands belong to test/work.
package grace
