// Package reference describes every field of the API's documents: type, meaning,
// default, unit, range and an example. muster explain prints the descriptions and
// docs/reference is generated from them.
//
// The meaning of a field is its comment in package api or resource; texts.json
// holds the comments, and a test keeps it equal to the source. The other facts are
// tags of the field. Tests prove them against the decoders.
//
// The package decides nothing about the documents themselves.
package reference
