// Package scheduling compares placement, the choice of victims and the explanation
// on cluster.State with the code before it, which undid by itself and worked on
// copies (the files old_*), over random clusters. Every decision is equal.
package scheduling
