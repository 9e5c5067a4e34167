package record

import (
	"bytes"
	"strconv"
)

// pastInstants are the fields with instants of leaders in records of transactions and places
// in the order: milliseconds since 1970, at or before the write of the record.
var pastInstants = [][]byte{[]byte(`"committedMillis":`), []byte(`"endingMillis":`), []byte(`"endedMillis":`), []byte(`"sinceMillis":`)}

// NewestInstant is the newest instant of a leader in records of transactions and places in
// the order, in milliseconds since 1970; 0 without any. The records are not decoded: a
// leader asks at the election, and reads each record later.
func NewestInstant(lists ...[]KV) (newest int64) {
	for _, kvs := range lists {
		for i := range kvs {
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
