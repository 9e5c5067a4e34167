// Package protogen holds the generated files of proto to their .proto files: a test
// generates the same bytes in memory, without protoc. The package writes no file;
// make proto does.
package protogen

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// root is the folder of the .proto files.
var root = filepath.Join("..", "..", "proto")

// plugins write the generated files.
var plugins = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

// protocVersion is the version of protoc in the heads of the generated files.
var protocVersion = &pluginpb.Version{Major: proto.Int32(3), Minor: proto.Int32(21), Patch: proto.Int32(12), Suffix: proto.String("")}

func TestGeneratedFilesAreThoseOfTheirProtoFiles(t *testing.T) {
	request := compile(t)
	want := map[string][]byte{}
	for _, plugin := range plugins {
		for name, text := range generate(t, plugin, request) {
			want[name] = text
		}
	}
	for _, name := range filesBelow(t, ".pb.go") {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		switch text, ok := want[name]; {
		case !ok:
			t.Errorf("proto/%s comes from no .proto file: delete the file", name)
		case !bytes.Equal(got, text):
			t.Errorf("proto/%s has other bytes than its .proto file gives from line %d: run make proto", name, 1+bytes.Count(commonStart(got, text), []byte("\n")))
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("proto/%s is missing: run make proto", name)
	}
}

func commonStart(a, b []byte) []byte {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// filesBelow returns the files of proto with an ending, in order.
func filesBelow(t *testing.T, ending string) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ending) {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files %s in proto, %v", len(all), ending, err)
	}
	slices.Sort(all)
	return all
}

// compile reads all .proto files, as protoc hands them to its plugins.
func compile(t *testing.T) *pluginpb.CodeGeneratorRequest {
	t.Helper()
	names := filesBelow(t, ".proto")
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		t.Fatal(err)
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names, Parameter: proto.String("paths=source_relative"), CompilerVersion: protocVersion}
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		request.ProtoFile = append(request.ProtoFile, asProto(f))
	}
	for _, f := range files {
		add(f)
	}
	return request
}

func asProto(f protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	return protoutil.ProtoFromFileDescriptor(f)
}

// generate runs a plugin and returns the files that it writes.
func generate(t *testing.T, plugin string, request *pluginpb.CodeGeneratorRequest) map[string][]byte {
	t.Helper()
	in, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", plugin, err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil || response.Error != nil {
		t.Fatalf("%s: %v %s", plugin, err, response.GetError())
	}
	files := map[string][]byte{}
	for _, f := range response.File {
		files[f.GetName()] = []byte(f.GetContent())
	}
	return files
}
