// Package day has the simulation of test/sim live for hours of virtual time, with its faults,
// and keeps the history of each cluster in SQLite and in PostgreSQL. Afterwards the rows are
// asked for contradictions by SQL, and the sums of use are compared with those of a witness
// that has read the records alone, by other code.
package day
