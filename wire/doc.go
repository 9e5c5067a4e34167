// Package wire converts between the vocabulary of Muster (resource, numa,
// devices) and the messages of proto/muster/v1. To… functions build messages
// and cannot fail; From… functions read messages that another process wrote,
// check every rule of the vocabulary, and refuse a bad one with an error that
// names the field and its value. The result shares nothing with the argument
// except strings.
//
// It decides nothing about the permitted senders or the effect of a message:
// that is agent/rpc's and the coordinator's business.
package wire
