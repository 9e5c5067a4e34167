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

// count takes a message's elements from what is left; false means that there
// were more. Malformed parts are left to the decoder, which refuses them.
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

// codec is gRPC's own for protocol buffers, with the scan before it decodes.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

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
	if p == nil {
		return c.CodecV2.Unmarshal(data, v)
	}
	if n := data.Len(); int64(n) > p.size { // before it is copied
		return fmt.Errorf("%s: %d bytes, more than %d", p.name, n, p.size)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	if bad := p.scan(buffer.ReadOnlyData()); bad != nil {
		bad.Message = string(p.name)
		return bad
	}
	return proto.Unmarshal(buffer.ReadOnlyData(), m)
}
