package limits

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// bytesPerElement is the least share of a message's size that one of its
// elements may have on average. An element (a message within, an entry of a
// list or map) takes two bytes of a message and about 64 bytes of memory: without
// a bound 2 MiB of a peer become 64 MiB here before the first count is judged.
const bytesPerElement = 16

// scan judges the size of an encoded message and counts its elements.
func (p *plan) scan(encoded []byte) *Violation {
	if int64(len(encoded)) > p.size {
		return problem("%d bytes, more than %d", len(encoded), p.size)
	}
	left := p.size / bytesPerElement
	if !p.count(encoded, &left) {
		return problem("more than %d entries and messages within, in all", p.size/bytesPerElement)
	}
	return nil
}

// count takes a message's elements from the remaining number; false means that
// there were more. Malformed parts are left to the decoder, which refuses them.
func (p *plan) count(encoded []byte, left *int64) bool {
	for len(encoded) > 0 {
		number, kind, n := protowire.ConsumeTag(encoded)
		if n < 0 {
			return true
		}
		encoded = encoded[n:]
		n = protowire.ConsumeFieldValue(number, kind, encoded)
		if n < 0 {
			return true
		}
		if f := p.wire[number]; f != nil {
			if *left--; *left < 0 {
				return false
			}
			if f.part != nil && kind == protowire.BytesType {
				if within, m := protowire.ConsumeBytes(encoded); m >= 0 && !f.part.count(within, left) {
					return false
				}
			}
		}
		encoded = encoded[n:]
	}
	return true
}

type codec struct{ encoding.CodecV2 }

// Codec is gRPC's own for protocol buffers, except that it counts a message of
// ours before it decodes it. Admit comes after it.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

// Decode reads a message as the edges do: it counts, decodes and admits it.
func Decode(encoded []byte, m proto.Message) error {
	p, err := planOf(m.ProtoReflect().Descriptor())
	if err != nil {
		return err
	}
	if err := p.decode(encoded, m); err != nil {
		return err
	}
	return Admit(m)
}

func (p *plan) decode(encoded []byte, m proto.Message) error {
	if p != nil {
		if bad := p.scan(encoded); bad != nil {
			bad.Message = string(p.name)
			return bad
		}
	}
	return proto.Unmarshal(encoded, m)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	p, err := planOf(m.ProtoReflect().Descriptor())
	if err != nil {
		return err
	}
	if p != nil && int64(data.Len()) > p.size { // before it is copied
		return &Violation{Message: string(p.name), Problem: fmt.Sprintf("%d bytes, more than %d", data.Len(), p.size)}
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	return p.decode(buffer.ReadOnlyData(), m)
}
