package strict

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Merge applies a merge patch (RFC 7386) to an object: null removes a member,
// an object is merged, any other value replaces. The patch is held to all that
// Decode asks of a document, but for the names of its fields; the target must
// be an object. The result's members are in ascending order.
func Merge(target, patch []byte) ([]byte, *Error) {
	d := &decoder{data: patch}
	if !utf8.Valid(patch) {
		return nil, d.fail("the patch is not valid UTF-8")
	}
	d.space()
	if d.peek() != '{' {
		return nil, d.syntax("an object {…}")
	}
	if err := d.skip(0); err != nil {
		return nil, err
	}
	d.space()
	if d.pos < len(d.data) {
		return nil, d.syntax("the end of the patch")
	}
	return merge(target, patch), nil
}

// merge is MergePatch of RFC 7386, section 2. A target that is no object
// counts as an empty one.
func merge(target, patch json.RawMessage) json.RawMessage {
	var changes, members map[string]json.RawMessage
	if json.Unmarshal(patch, &changes) != nil {
		return patch
	}
	if json.Unmarshal(target, &members) != nil || members == nil {
		members = make(map[string]json.RawMessage, len(changes))
	}
	for name, change := range changes {
		if bytes.Equal(change, []byte("null")) {
			delete(members, name)
		} else {
			members[name] = merge(members[name], change)
		}
	}
	out, err := json.Marshal(members)
	if err != nil {
		panic(err) // both were valid
	}
	return out
}
