// Package access keeps the access tokens and the role bindings of the API. Table
// holds both in memory, as each coordinator has followed the store; Authenticator
// finds the caller of a request in it; Keeper changes them in the store, and answers
// once all live coordinators have followed.
//
// A token has a secret or, for people with a key of their own, a client certificate.
//
// The package decides who a caller is. Package service decides what a caller may do,
// and who may change tokens and bindings.
package access
