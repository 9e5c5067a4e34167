// Package grpcapi is the public API over gRPC: a codec of the service that REST serves,
// too. It authenticates callers by REST's own Authenticator and translates. Package api
// judges the documents, and the service.Service beneath answers everything else, so REST
// and gRPC answer alike.
package grpcapi

// principalKey is the context's key of the caller.
type principalKey struct{}
