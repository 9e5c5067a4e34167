// Package usage turns the intervals in which members hold resources into slices, and
// keeps the prices of resources.
//
// A slice is one member, one slot and one interval with amount and duration apart. The
// package decides only. The warehouse keeps slices and sums them up by SQL: the integral
// of each slice, Σ amount × duration, and its cost. The package usagetest computes the
// same sums in memory; the tests of both hold that they agree.
package usage
