package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
)

const (
	version      = 2
	oldest       = 1 // version that can be read, and gone on with
	headerSize   = 64
	recordHeader = 16
	pageSize     = 4096

	// MaxPayload is the greatest length of one payload, in bytes; the least
	// is 1.
	MaxPayload = 1 << 20
	// MaxFile is the greatest size of the records of one file, in bytes. The
	// owner compacts long before.
	MaxFile = 1 << 30
)

const magic = "MUSTERJ\n"

// flagDoubt: a write or sync of this file failed; it may lack records.
const flagDoubt = 1

// header is the first 64 bytes of a file.
type header struct {
	version uint32
	flags   uint32
	id      [16]byte
	counter uint64 // how many identifiers this folder has had
	base    uint64 // the sequence before the first record's
	size    uint64 // that the file was made with; 0 in version 1
}

func (h header) identifier() string { return hex.EncodeToString(h.id[:]) }

func (h header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], h.version)
	binary.LittleEndian.PutUint32(b[12:], h.flags)
	copy(b[16:], h.id[:])
	binary.LittleEndian.PutUint64(b[32:], h.counter)
	binary.LittleEndian.PutUint64(b[40:], h.base)
	binary.LittleEndian.PutUint64(b[48:], h.size)
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli()))
	return b
}

// seed is the start of the checksums of this file's records, so that no record
// of another journal passes for one of this.
func (h header) seed() uint32 {
	if h.version < 2 {
		return 0
	}
	return crc32.Checksum(h.id[:], castagnoli())
}

// castagnoli returns the table for which the standard library uses the CPU's
// CRC-32C instruction; MakeTable builds it once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func decodeHeader(b []byte) (header, error) {
	if len(b) < headerSize {
		return header{}, fmt.Errorf("the file has %d bytes, its header needs %d", len(b), headerSize)
	}
	if string(b[:8]) != magic {
		return header{}, fmt.Errorf("it begins with %q, not %q", b[:8], magic)
	}
	want := binary.LittleEndian.Uint32(b[60:])
	if got := crc32.Checksum(b[:60], castagnoli()); got != want {
		return header{}, fmt.Errorf("the header's checksum is %08x, its bytes give %08x", want, got)
	}
	v := binary.LittleEndian.Uint32(b[8:])
	if v < oldest || v > version {
		return header{}, fmt.Errorf("it is of version %d, this program reads versions %d to %d", v, oldest, version)
	}
	h := header{
		version: v,
		flags:   binary.LittleEndian.Uint32(b[12:]),
		counter: binary.LittleEndian.Uint64(b[32:]),
		base:    binary.LittleEndian.Uint64(b[40:]),
		size:    binary.LittleEndian.Uint64(b[48:]),
	}
	copy(h.id[:], b[16:])
	if h.flags&^flagDoubt != 0 || !allZero(b[56:60]) || v < 2 && h.size != 0 {
		return header{}, fmt.Errorf("the header has unknown flags %#x or a reserved byte set", h.flags)
	}
	return h, nil
}

// appendRecord appends the record of one payload; seed is header.seed.
func appendRecord(dst []byte, seed uint32, sequence uint64, payload []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = binary.LittleEndian.AppendUint64(dst, sequence)
	crc := crc32.Update(crc32.Update(seed, castagnoli(), dst[at:]), castagnoli(), payload)
	dst = binary.LittleEndian.AppendUint32(dst, crc)
	return append(dst, payload...)
}

// recordAt returns the payload of the record at the start of b, whatever its
// sequence; ok is false where there is no whole record with a good checksum.
func recordAt(b []byte, seed uint32) (sequence uint64, payload []byte, ok bool) {
	if len(b) < recordHeader {
		return 0, nil, false
	}
	length := binary.LittleEndian.Uint32(b)
	if length == 0 || length > MaxPayload || int(length) > len(b)-recordHeader {
		return 0, nil, false
	}
	payload = b[recordHeader : recordHeader+int(length) : recordHeader+int(length)]
	crc := crc32.Update(crc32.Update(seed, castagnoli(), b[:12]), castagnoli(), payload)
	if crc != binary.LittleEndian.Uint32(b[12:]) {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint64(b[4:]), payload, true
}

// image is the decoded content of a file.
type image struct {
	header   header
	payloads [][]byte // slices of the bytes parsed
	end      int      // offset behind the last good record
	torn     bool     // something follows end that is to be cut
	short    int64    // bytes that the file lacks of those it was made with
}

// parse reads a file's bytes. An error is a *CorruptError without a file name.
func parse(data []byte) (image, error) {
	h, err := decodeHeader(data)
	if err != nil {
		return image{}, &CorruptError{Offset: 0, Problem: err.Error()}
	}
	img := image{header: h, end: headerSize, short: max(0, int64(h.size)-int64(len(data)))}
	next, seed := h.base+1, h.seed()
	for {
		sequence, payload, ok := recordAt(data[img.end:], seed)
		if !ok {
			break
		}
		if sequence != next {
			return image{}, &CorruptError{Offset: int64(img.end), Problem: fmt.Sprintf("a record with a good checksum has sequence %d where %d is due", sequence, next)}
		}
		img.payloads = append(img.payloads, payload)
		img.end += recordHeader + len(payload)
		next++
	}
	if allZero(data[img.end:]) {
		return img, nil
	}
	img.torn = true
	at, sequence, found := nextRecord(data, img.end+1, h)
	if found && !pageLost(data, img.end) {
		return image{}, &CorruptError{Offset: int64(img.end), Problem: fmt.Sprintf("record %d is damaged, but record %d at offset %d is whole", next, sequence, at)}
	}
	return img, nil
}

// nextRecord searches for any whole record of this file at or behind from.
func nextRecord(data []byte, from int, h header) (at int, sequence uint64, found bool) {
	base, seed := h.base, h.seed()
	most := base + uint64(len(data)/recordHeader) // no file holds more records
	for at = from; at+recordHeader < len(data); at++ {
		if data[at] == 0 && data[at+1] == 0 && data[at+2] == 0 && data[at+3] == 0 {
			continue
		}
		if s := binary.LittleEndian.Uint64(data[at+4:]); s <= base || s > most {
			continue
		}
		if s, _, ok := recordAt(data[at:], seed); ok {
			return at, s, true
		}
	}
	return 0, 0, false
}

// pageLost reports whether the bad record at offset off lacks a page that was
// written and never reached the disk: from the record's start, or from a page
// boundary within it, to the end of that page there are only zeros.
func pageLost(data []byte, off int) bool {
	end := off + recordHeader
	if off+4 <= len(data) {
		if length := binary.LittleEndian.Uint32(data[off:]); length <= MaxPayload {
			end += int(length)
		}
	}
	for from := off; from < end && from < len(data); {
		to := min((from/pageSize+1)*pageSize, len(data))
		if allZero(data[from:to]) {
			return true
		}
		from = to
	}
	return false
}

func allZero(b []byte) bool {
	var zeros [pageSize]byte
	for len(b) > len(zeros) {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
		b = b[len(zeros):]
	}
	return bytes.Equal(b, zeros[:len(b)])
}
