// Package evil holds the attack programs of test/hostile: one hostile host, one
// hostile ring member, one network peer without a certificate, one tenant and
// one false coordinator. Each mode is one attack. A mode is bounded in number,
// time and memory, ends by itself, and attacks the addresses of its Spec alone,
// which have to be loopback addresses.
//
// A hostile host is a real agent with a relay in front of it (Host): the agent
// enrolls, registers, votes and holds grants as any other, and the mode changes
// single messages on their way. So the coordinators meet a node that is honest
// in all but one thing.
//
// The package decides nothing about right and wrong: it reports the answers it
// got (Report), and test/hostile compares them with the expected ones.
package evil
