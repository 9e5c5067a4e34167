package lead

import (
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// nextToken draws the token of a question.
func (l *Leader) nextToken() Token {
	l.lastToken++
	return l.lastToken
}

// submit asks for a write; done takes the outcome.
func (l *Leader) submit(d decision) {
	t := l.nextToken()
	ops, done := l.noteChangeIn(d)
	l.writes[t] = done
	l.out.add(Effect{Kind: WriteKeys, Token: t, Write: Write{d.compares, ops, d.anyEpoch, d.once}})
}

// read asks for a key; answer takes the key of the store and the store's revision
// at the read.
func (l *Leader) read(key string, answer func(kv record.KV, found bool, revision resource.Revision)) {
	t := l.nextToken()
	l.reads[t] = answer
	if c := l.acting; c != nil {
		l.reads[t] = func(kv record.KV, found bool, revision resource.Revision) {
			defer l.actFor(c)()
			answer(kv, found, revision)
		}
	}
	l.out.add(Effect{Kind: ReadKey, Token: t, Key: key})
}
