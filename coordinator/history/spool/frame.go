package spool

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/musterd/muster/coordinator/history"
)

const (
	version = 1
	// headBytes are length and checksum.
	headBytes = 8
	// mostFrame bounds the payload of a frame, and mostText the batch in it as JSON.
	mostFrame = 64 << 20
	mostText  = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn is a frame that was not written to its end.
var errTorn = errors.New("the frame is cut off or damaged")

// VersionError refuses a frame of another version of the format: another version of the
// program has written it.
type VersionError struct{ Has int }

// Error names both versions and the next step.
func (e *VersionError) Error() string {
	return fmt.Sprintf("a frame of the spool has version %d, and this program reads version %d: start the program that has written it until the database has its rows, or move the folder away and accept a gap", e.Has, version)
}

// encode makes the frame of a batch.
func encode(b history.Batch) ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode a batch of the history: %w", err)
	}
	if len(text) > mostText {
		return nil, fmt.Errorf("encode a batch of the history: %d bytes, want at most %d", len(text), mostText)
	}
	var out bytes.Buffer
	out.Write(make([]byte, headBytes))
	out.WriteByte(version)
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress a batch of the history: %w", err)
	}
	frame := out.Bytes()
	payload := frame[headBytes:]
	if len(payload) > mostFrame {
		return nil, fmt.Errorf("a batch of the history has %d bytes, want at most %d", len(payload), mostFrame)
	}
	binary.LittleEndian.PutUint32(frame, uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(payload, castagnoli))
	return frame, nil
}

// decode reads the first frame of some bytes, and the length of the frame.
func decode(data []byte) (b history.Batch, length int, err error) {
	if len(data) < headBytes {
		return b, 0, errTorn
	}
	n := int(binary.LittleEndian.Uint32(data))
	if n < 1 || n > mostFrame || len(data)-headBytes < n {
		return b, 0, errTorn
	}
	payload := data[headBytes : headBytes+n]
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return b, 0, errTorn
	}
	if payload[0] != version {
		return b, 0, &VersionError{Has: int(payload[0])}
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(payload[1:])), mostText+1))
	if err != nil {
		return b, 0, fmt.Errorf("a frame of the spool: %w", err)
	}
	if len(text) > mostText {
		return b, 0, fmt.Errorf("a frame of the spool has more than %d bytes", mostText)
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, 0, fmt.Errorf("a frame of the spool: %w", err)
	}
	dropNulls(&b)
	if b.Upto < b.After || b.After < 0 {
		return b, 0, fmt.Errorf("a frame of the spool reaches from revision %d to %d", b.After, b.Upto)
	}
	return b, headBytes + n, nil
}

// dropNulls has parts that are absent be absent again: JSON writes them as null.
func dropNulls(b *history.Batch) {
	drop := func(parts ...*json.RawMessage) {
		for _, p := range parts {
			if string(*p) == "null" {
				*p = nil
			}
		}
	}
	for i := range b.Nodes {
		drop(&b.Nodes[i].Taints, &b.Nodes[i].Conditions)
	}
	for i := range b.Jobs {
		drop(&b.Jobs[i].Document)
	}
	for i := range b.Units {
		u := &b.Units[i]
		drop(&u.NodeSelector, &u.Affinity, &u.Tolerations, &u.Topology)
	}
	for i := range b.Grants {
		drop(&b.Grants[i].Exits)
	}
	for i := range b.Audit {
		drop(&b.Audit[i].Actor)
	}
}
