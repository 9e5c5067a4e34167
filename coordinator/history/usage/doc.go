// Package usage turns the intervals in which members hold resources into slices, and
// slices into sums: how much of a resource a tenant held in an hour or a day, the
// least, the most and the percentiles of it, and the price.
//
// A slice is one member, one slot and one interval with amount and duration apart. A
// sum holds the integral, Σ amount × duration of each slice: never the product of two
// sums, which would count every member as long as all of them together
// (FIELD-NOTES 2). Integrals pass the range of int64 (a day of a terabyte is 10^20
// byte milliseconds), so that they are whole numbers of any size; no float is used.
//
// The package decides only. The warehouse keeps slices and computes the same sums by
// SQL; the tests of both hold that they agree.
package usage
