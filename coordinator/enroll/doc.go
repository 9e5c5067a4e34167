// Package enroll is a coordinator's side of who is who (docs/security.md): it
// keeps the cluster's authorities, bootstrap tokens and gossip keys in the
// store, certifies nodes and coordinators, and serves muster.v1.Enrollment. The
// store decides which gossip keys there are: coordinators follow it, and agents
// fetch the keys from coordinators.
//
// It decides who gets a certificate for which identity, and whose certificate no
// longer counts: keys that were replaced, bans, revoked operators. Whether a
// certificate is good is pki's to say, and what it allows rpcauth's. Any coordinator can do
// all of it, leader or not: whatever must be decided once is one Txn with
// compares.
package enroll
