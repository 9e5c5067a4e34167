#!/bin/sh
# Regenerates proto/**/*.pb.go with the pinned plug-ins of tools/go.mod.
# Needs protoc (Debian: protobuf-compiler).
set -eu
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
(cd ../tools && go build -o "$bin/" google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc)
PATH="$bin:$PATH" protoc -I . --go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative \
	muster/v1/*.proto muster/api/v1/*.proto scheduler/v1/*.proto
