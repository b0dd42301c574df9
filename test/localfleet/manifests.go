// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/condition"
)

// fieldManager is the field manager of what the fleet applies.
const fieldManager = client.FieldOwner("localfleet")

const (
	applyTimeout     = 2 * time.Minute
	applyParallelism = 8
)

// manifests are the fleet's own objects: the test CRDs of the hub, the node of a workload cluster, and sample APIs for
// tests and the demo.
//
//go:embed manifests
var manifests embed.FS

// Apply applies YAML files, or folders of them, to a cluster by server-side apply, and returns when all CRDs among them
// are served. A folder's kustomization.yaml is skipped, as are its subfolders.
func Apply(ctx context.Context, config *rest.Config, paths ...string) error {
	objects, err := readManifests(paths)
	if err != nil {
		return err
	}
	return applyObjects(ctx, config, objects)
}

// applyObjects applies namespaces first, then CRDs, then the rest. Objects that cannot be applied yet, for example
// because a kind was only just established, are tried again.
func applyObjects(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	stages := [3][]*unstructured.Unstructured{}
	for _, object := range objects {
		switch object.GetKind() {
		case "Namespace":
			stages[0] = append(stages[0], object)
		case "CustomResourceDefinition":
			stages[1] = append(stages[1], object)
		default:
			stages[2] = append(stages[2], object)
		}
	}
	for _, stage := range stages {
		if len(stage) == 0 {
			continue
		}
		// Each stage has its own client, because it must find the kinds of the stage before.
		c, err := newClient(config)
		if err != nil {
			return err
		}
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(applyParallelism)
		for _, object := range stage {
			group.Go(func() error { return applyObject(groupCtx, c, object) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return waitEstablished(ctx, config, stages[1])
}

func applyObject(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, applyTimeout, true, func(ctx context.Context) (bool, error) {
		last = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldManager, client.ForceOwnership)
		if isPermanent(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("cannot apply %s %q: %w", object.GetKind(), object.GetName(), errors.Join(last, ctx.Err()))
	}
	return nil
}

// waitEstablished returns when the API server serves the kinds of the CRDs.
func waitEstablished(ctx context.Context, config *rest.Config, crds []*unstructured.Unstructured) error {
	if len(crds) == 0 {
		return nil
	}
	c, err := newClient(config)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, applyTimeout, true, func(ctx context.Context) (bool, error) {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(crd.GroupVersionKind())
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
				return false, nil //nolint:nilerr // Tried again until the time is over.
			}
			return condition.IsTrue(live, "Established"), nil
		})
		if err != nil {
			return fmt.Errorf("the CRD %q was not established: %w", crd.GetName(), err)
		}
	}
	return nil
}

func newClient(config *rest.Config) (client.Client, error) {
	c, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for %s: %w", config.Host, err)
	}
	return c, nil
}

// readManifests reads the objects in YAML files and folders of them.
func readManifests(paths []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		files := []string{path}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read manifests: %w", err)
		}
		if info.IsDir() {
			if files, err = yamlFiles(path); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("cannot read manifests: %w", err)
			}
			found, err := parseManifests(content)
			if err != nil {
				return nil, fmt.Errorf("cannot parse %s: %w", file, err)
			}
			objects = append(objects, found...)
		}
	}
	return objects, nil
}

// embeddedManifests reads the objects in one embedded folder.
func embeddedManifests(folder string) ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(manifests, "manifests/"+folder+"/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot read the embedded manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := manifests.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read the embedded manifests: %w", err)
		}
		found, err := parseManifests(content)
		if err != nil {
			return nil, fmt.Errorf("cannot parse %s: %w", file, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func applyEmbedded(ctx context.Context, config *rest.Config, folder string) error {
	objects, err := embeddedManifests(folder)
	if err != nil {
		return err
	}
	return applyObjects(ctx, config, objects)
}

func parseManifests(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func yamlFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("cannot list manifests: %w", err)
	}
	var files []string
	for _, entry := range entries {
		extension := filepath.Ext(entry.Name())
		if entry.IsDir() || (extension != ".yaml" && extension != ".yml") || strings.HasPrefix(entry.Name(), "kustomization.") {
			continue
		}
		files = append(files, filepath.Join(folder, entry.Name()))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no YAML file in %s", folder)
	}
	return files, nil
}
