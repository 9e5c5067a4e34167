// Package rest is the public REST API: routing, authentication, decoding,
// waiting and the error format. It decides which callers may use which
// endpoints and whether a document is well formed; everything else is the
// service's (package service).
package rest
