// Package identity holds agents' and coordinators' ends of enrollment, renewal
// and rotation against each other: the real services over gRPC and mutual TLS,
// in memory and in fake time.
package identity
