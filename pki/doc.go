// Package pki is who is who in a cluster: identities as they stand in
// certificates, the authorities that sign them, the check of a peer's chain,
// and bootstrap tokens. It decides whether a certificate proves an identity;
// what an identity may do is rpcauth's business, and where keys and
// certificates are kept is the business of coordinator/enroll and of the
// agents.
//
// Keys are ECDSA P-256: every TLS library and browser takes them. Times are
// arguments; randomness is the system's.
package pki
