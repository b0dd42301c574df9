// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// writeSBOM writes the modules of the binary as an SPDX 2.3 document.
func writeSBOM(binary, version string, created time.Time, out string) error {
	modules, err := modulesOf(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary) //nolint:gosec // Our own binary.
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", binary, err)
	}
	sum := sha256.Sum256(content)
	var text bytes.Buffer
	if err := spdxjson.Write(sbomOf(modules, version, hex.EncodeToString(sum[:]), created), &text, spdxjson.Indent("  ")); err != nil {
		return fmt.Errorf("cannot write the SPDX document: %w", err)
	}
	return os.WriteFile(out, text.Bytes(), 0o644) //nolint:gosec // To be read by all.
}

// sbomOf returns the document: the manager, and a package for each module that it contains.
func sbomOf(modules []Module, version, sum string, created time.Time) *v2_3.Document {
	const root = common.ElementID("Package-masthead")
	document := &v2_3.Document{
		SPDXVersion:    v2_3.Version,
		DataLicense:    v2_3.DataLicense,
		SPDXIdentifier: "DOCUMENT",
		DocumentName:   "masthead-" + version,
		// Unique for the content, as SPDX requires, and the same for the same content.
		DocumentNamespace: "https://masthead.dev/spdx/masthead-" + version + "-" + sum,
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "masthead-release"}},
			Created:  created.Format(time.RFC3339),
		},
		Packages: []*v2_3.Package{{
			PackageName: "masthead", PackageSPDXIdentifier: root, PackageVersion: version,
			PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "Apache-2.0",
			PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: "Copyright The Masthead Authors.",
			PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: sum}},
		}},
		Relationships: []*v2_3.Relationship{{
			RefA: common.MakeDocElementID("", "DOCUMENT"), RefB: common.MakeDocElementID("", string(root)),
			Relationship: common.TypeRelationshipDescribe,
		}},
	}
	for _, module := range modules {
		id := common.ElementID("Package-" + spdxID(module.Path))
		licenses := strings.Join(module.Licenses, " AND ")
		document.Packages = append(document.Packages, &v2_3.Package{
			PackageName: module.Path, PackageSPDXIdentifier: id, PackageVersion: module.Version,
			PackageDownloadLocation: "https://" + module.Path,
			PackageLicenseConcluded: licenses, PackageLicenseDeclared: licenses,
			PackageCopyrightText: "NOASSERTION",
			PackageExternalReferences: []*v2_3.PackageExternalReference{{
				Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
				Locator: "pkg:golang/" + module.Path + "@" + module.Version,
			}},
			PackageComment: module.Sum,
		})
		document.Relationships = append(document.Relationships, &v2_3.Relationship{
			RefA: common.MakeDocElementID("", string(root)), RefB: common.MakeDocElementID("", string(id)),
			Relationship: common.TypeRelationshipContains,
		})
	}
	return document
}

// spdxID keeps what SPDX allows in an identifier: letters, numbers, dots and hyphens.
func spdxID(path string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		default:
			return '-'
		}
	}, path)
}
