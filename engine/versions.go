package main

import (
	"fmt"
	"runtime/debug"
)

// sourceHash names the sources that this binary was built from; the builder sets it with -ldflags -X.
var sourceHash = "unknown"

// versions returns the versions of the parts, read from the module list inside the binary.
func versions() map[string]string {
	found := map[string]string{"engine": sourceHash, "kubernetes": "unknown", "kine": "unknown", "kwok": "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	found["go"] = info.GoVersion
	names := map[string]string{
		"k8s.io/kubernetes":      "kubernetes",
		"github.com/k3s-io/kine": "kine",
		"sigs.k8s.io/kwok":       "kwok",
	}
	for _, module := range info.Deps {
		if name, ours := names[module.Path]; ours {
			found[name] = module.Version
		}
	}
	return found
}

func versionLine() string {
	v := versions()
	return fmt.Sprintf("podwarden-engine %s kubernetes %s kine %s kwok %s %s", v["engine"], v["kubernetes"], v["kine"], v["kwok"], v["go"])
}
