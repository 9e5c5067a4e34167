package grpcapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// This file maps documents to the messages of muster.api.v1 and back, by the
// names of their fields in JSON: a message has the fields of its document, so
// that one rule maps all kinds. Amounts are texts on both sides.

// toMessage fills a message from a document of package api.
func toMessage[M proto.Message](document any, m M) (M, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return m, err
	}
	read := json.NewDecoder(bytes.NewReader(text))
	read.UseNumber()
	var fields map[string]any
	if err := read.Decode(&fields); err != nil {
		return m, err
	}
	return m, fillMessage(m.ProtoReflect(), fields)
}

// structName is the message for JSON of any shape.
const structName = "google.protobuf.Struct"

func fillMessage(m protoreflect.Message, fields map[string]any) error {
	if m.Descriptor().FullName() == structName {
		made, err := structpb.NewStruct(floats(fields).(map[string]any))
		if err == nil {
			proto.Merge(m.Interface(), made)
		}
		return err
	}
	for name, value := range fields {
		field := m.Descriptor().Fields().ByJSONName(name)
		if field == nil {
			return fmt.Errorf("%s has no field %q", m.Descriptor().FullName(), name)
		}
		if value == nil {
			continue
		}
		if err := fillField(m, field, value); err != nil {
			return fmt.Errorf("%s: %w", field.FullName(), err)
		}
	}
	return nil
}

func fillField(m protoreflect.Message, field protoreflect.FieldDescriptor, value any) error {
	switch given := value.(type) {
	case []any:
		if !field.IsList() {
			return fmt.Errorf("a list")
		}
		list := m.Mutable(field).List()
		for _, item := range given {
			v, err := valueOf(field, item, list.NewElement)
			if err != nil {
				return err
			}
			list.Append(v)
		}
		return nil
	case map[string]any:
		if !field.IsMap() {
			break
		}
		dict := m.Mutable(field).Map()
		for key, item := range given {
			v, err := valueOf(field.MapValue(), item, dict.NewValue)
			if err != nil {
				return err
			}
			dict.Set(protoreflect.ValueOfString(key).MapKey(), v)
		}
		return nil
	}
	v, err := valueOf(field, value, func() protoreflect.Value { return m.NewField(field) })
	if err == nil {
		m.Set(field, v)
	}
	return err
}

// valueOf is one value of a field; empty makes the field's empty message.
func valueOf(field protoreflect.FieldDescriptor, value any, empty func() protoreflect.Value) (protoreflect.Value, error) {
	switch given := value.(type) {
	case string:
		if field.Kind() == protoreflect.StringKind {
			return protoreflect.ValueOfString(given), nil
		}
	case bool:
		if field.Kind() == protoreflect.BoolKind {
			return protoreflect.ValueOfBool(given), nil
		}
	case json.Number:
		switch field.Kind() {
		case protoreflect.StringKind: // a quantity that was written as a number
			return protoreflect.ValueOfString(given.String()), nil
		case protoreflect.Int64Kind:
			n, err := given.Int64()
			return protoreflect.ValueOfInt64(n), err
		case protoreflect.Int32Kind:
			n, err := strconv.ParseInt(given.String(), 10, 32)
			return protoreflect.ValueOfInt32(int32(n)), err
		case protoreflect.DoubleKind:
			f, err := given.Float64()
			return protoreflect.ValueOfFloat64(f), err
		}
	case map[string]any:
		if field.Kind() == protoreflect.MessageKind {
			made := empty()
			return made, fillMessage(made.Message(), given)
		}
	}
	return protoreflect.Value{}, fmt.Errorf("%T does not suit a field of kind %s", value, field.Kind())
}

// floats replaces each number by a float64, the only number of a Struct.
func floats(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = floats(item)
		}
	case []any:
		for i, item := range v {
			v[i] = floats(item)
		}
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	}
	return value
}

// documentOf is the JSON of the document that a message holds.
func documentOf(m proto.Message) ([]byte, error) {
	return json.Marshal(plainOf(m.ProtoReflect()))
}

// plainOf holds the fields of a message that are set, by their names in JSON.
func plainOf(m protoreflect.Message) any {
	if s, is := m.Interface().(*structpb.Struct); is {
		return s.AsMap()
	}
	fields := map[string]any{}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsList():
			items := make([]any, v.List().Len())
			for i := range items {
				items[i] = plainValue(field, v.List().Get(i))
			}
			fields[field.JSONName()] = items
		case field.IsMap():
			items := map[string]any{}
			v.Map().Range(func(key protoreflect.MapKey, item protoreflect.Value) bool {
				items[key.String()] = plainValue(field.MapValue(), item)
				return true
			})
			fields[field.JSONName()] = items
		default:
			fields[field.JSONName()] = plainValue(field, v)
		}
		return true
	})
	return fields
}

func plainValue(field protoreflect.FieldDescriptor, v protoreflect.Value) any {
	if field.Kind() == protoreflect.MessageKind {
		return plainOf(v.Message())
	}
	return v.Interface()
}
