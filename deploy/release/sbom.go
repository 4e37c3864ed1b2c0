package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbom lists what a binary contains, as CycloneDX: the modules that its build information
// names, the Go release, and the scripts of the page.
func sbom(o options, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	components := []cdx.Component{golang("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, golang(m.Path, m.Version))
	}
	embedded, err := scripts(o.Source)
	if err != nil {
		return nil, err
	}
	components = append(components, embedded...)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: o.Time.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "assay", Type: cdx.ComponentTypeApplication, Name: "assay", Version: o.Version, PackageURL: "pkg:golang/assay@" + o.Version,
			Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		},
	}
	bom.Components = &components
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// golang returns the component of a Go module.
func golang(path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
}

// scripts returns the components of the scripts that the page embeds. The result is empty if the
// source was built without them.
func scripts(source string) (found []cdx.Component, err error) {
	page := filepath.Join(source, "internal/web")
	if _, err := os.Stat(filepath.Join(page, "static/vendor/htmx.min.js")); err != nil {
		return nil, nil //nolint:nilerr // built without npm
	}
	var lock struct {
		Packages map[string]struct {
			Version string `json:"version"`
			Dev     bool   `json:"dev"`
		} `json:"packages"`
	}
	text, err := os.ReadFile(filepath.Join(page, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("package-lock.json: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(lock.Packages)) {
		if p := lock.Packages[path]; path != "" && !p.Dev {
			name := strings.TrimPrefix(path, "node_modules/")
			url := "pkg:npm/" + name + "@" + p.Version
			found = append(found, cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: name, Version: p.Version, PackageURL: url})
		}
	}
	return found, nil
}
