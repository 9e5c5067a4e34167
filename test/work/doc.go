// Package work tests jobs with a command from the command line to their processes and
// back: a cluster in one process, real processes, and the program muster as a person
// runs it.
package work
