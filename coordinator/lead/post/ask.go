package post

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// NodeKeys answers ReadNodeKeys. Certified is zero where the node has no certificate.
type NodeKeys struct {
	Kvs       []record.KV
	Certified record.KV
	Err       error
}

// NextToken draws the token of a question.
func (p *Post) NextToken() Token {
	p.lastToken++
	return p.lastToken
}

// Submit asks for a write; d.Done takes the outcome.
func (p *Post) Submit(d Decision) {
	t := p.NextToken()
	ops, done := p.noteChangeIn(d)
	p.writes[t] = done
	p.Add(Effect{Kind: WriteKeys, Token: t, Write: Write{d.Compares, ops, d.AnyEpoch, d.Once}})
}

// Read asks for a key; answer takes the key of the store and the store's revision
// at the read.
func (p *Post) Read(key string, answer func(kv record.KV, found bool, revision resource.Revision)) {
	t := p.NextToken()
	p.reads[t] = answer
	if a := p.acting; a != nil {
		p.reads[t] = func(kv record.KV, found bool, revision resource.Revision) {
			defer p.ActFor(a)()
			answer(kv, found, revision)
		}
	}
	p.Add(Effect{Kind: ReadKey, Token: t, Key: key})
}

// ReadNode asks for the keys of a node.
func (p *Post) ReadNode(id resource.NodeID, answer func(NodeKeys)) {
	t, asker := p.NextToken(), p.acting
	p.nodeReads[t] = func(keys NodeKeys) {
		defer p.ActFor(asker)()
		answer(keys)
	}
	p.Add(Effect{Kind: ReadNodeKeys, Token: t, Node: id})
}

// Wrote brings the outcome of a write. A token without a waiter is left out.
func (p *Post) Wrote(t Token, o txn.Outcome, rev resource.Revision, err error) {
	if done, waits := p.writes[t]; waits {
		delete(p.writes, t)
		done(o, rev, err)
	}
}

// HasRead brings a key, as Wrote does an outcome.
func (p *Post) HasRead(t Token, kv record.KV, found bool, rev resource.Revision) {
	if answer, waits := p.reads[t]; waits {
		delete(p.reads, t)
		answer(kv, found, rev)
	}
}

// HasReadNode brings the keys of a node, as Wrote does an outcome.
func (p *Post) HasReadNode(t Token, keys NodeKeys) {
	if answer, waits := p.nodeReads[t]; waits {
		delete(p.nodeReads, t)
		answer(keys)
	}
}
