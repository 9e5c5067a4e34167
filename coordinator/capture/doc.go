// Package capture is the snapshot of a cluster's scheduling state as one document: the
// store's keys of nodes, quotas, queues and work, the hardware and the health that agents
// have reported, the mix of work that the leader has learned, and the rules of its
// configuration. A new leader (coordinator/lead) that begins with the document decides
// about further work as the captured one would have done.
//
// The document has nothing that only work or people need: no commands, arguments,
// environments and annotations, no addresses, tokens, certificates and request ids. The
// package decides the content of a document and which documents are well-formed. It
// reads no store and drives no leader.
package capture
