package record

import (
	"bytes"
	"strconv"
)

// pastInstants are the fields with instants of leaders in records of transactions, in the keys
// beside them and in places in the order: milliseconds since 1970, at or before the write.
var pastInstants = [][]byte{
	[]byte(`"committedMillis":`), []byte(`"endingMillis":`), []byte(`"endedMillis":`), []byte(`"sinceMillis":`), []byte(`"atMillis":`), []byte(`"signaledMillis":`),
}

// freedField begins the list of a Ready with FreedNode.
var freedField = []byte(`"freed":`)

// NewestInstant is the newest instant of a leader in records of transactions, in keys of Ready
// and in places in the order, in milliseconds since 1970; 0 without any. Of these only a Ready
// with freed nodes is decoded: a leader asks at the election, and reads each record later.
func NewestInstant(lists ...[]KV) (newest int64) {
	for _, kvs := range lists {
		for i := range kvs {
			if bytes.Contains(kvs[i].Value, freedField) {
				r, _ := Decode[Ready](kvs[i].Key, kvs[i].Value) // empty for other records
				for _, f := range r.Freed {
					newest = max(newest, f.AtMillis)
				}
			}
			for _, field := range pastInstants {
				for rest := kvs[i].Value; ; {
					_, after, found := bytes.Cut(rest, field)
					if !found {
						break
					}
					newest, rest = max(newest, leadingNumber(after)), after
				}
			}
		}
	}
	return newest
}

// leadingNumber is the number at the beginning of a text, or 0.
func leadingNumber(text []byte) int64 {
	text = bytes.TrimLeft(text, whiteSpace)
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	number, err := strconv.ParseInt(string(text[:n]), 10, 64)
	if err != nil {
		return 0
	}
	return number
}
