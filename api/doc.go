// Package api is the vocabulary of the public REST API: the documents that
// tenants and operators exchange with a coordinator, their strict decoding and
// their translation into package resource.
//
// It decides only whether a document is well formed. It does not know whether
// a request fits, may run or exists. The shapes follow spec/api-design.txt;
// fields that Muster adds are marked as such.
//
// Standard library and package resource only: no I/O, no clock, no goroutine.
package api
