package grpcapi

import "google.golang.org/protobuf/proto"

// ToMessage fills a message from a document.
func ToMessage[M proto.Message](document any, m M) (M, error) { return toMessage(document, m) }

// DocumentOf is the JSON of the document in a message.
func DocumentOf(m proto.Message) ([]byte, error) { return documentOf(m) }
