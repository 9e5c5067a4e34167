// Package tenancy tests the view that one tenant has of another through every door of
// a coordinator: REST, watches, gRPC and the calls of quota. Objects of others look as
// if they did not exist (T1).
package tenancy
