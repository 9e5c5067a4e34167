// Package pki has the identities of the parties in a cluster: identities in
// certificates, the authorities that sign them, the check of a peer's chain,
// and bootstrap tokens. It decides whether a certificate proves an identity.
// Package rpcauth decides the rights of an identity; coordinator/enroll and the
// agents store keys and certificates.
//
// Keys are ECDSA P-256: every TLS library and browser takes them. Times are
// arguments; randomness is the system's.
package pki
