// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/crossplane/function-sdk-go/resource/composed"
	"github.com/crossplane/function-sdk-go/response"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
)

// resultTTL is how long Crossplane may rely on an answer before it calls again. A change of the composite makes it call
// earlier.
const resultTTL = time.Minute

// Function answers Crossplane's calls.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	clock clock.PassiveClock
}

// New returns a Function that measures delays with the given clock.
func New(c clock.PassiveClock) *Function {
	return &Function{clock: c}
}

// RunFunction composes what the annotations of the composite request.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, resultTTL)

	observed, err := request.GetObservedCompositeResource(req)
	if err != nil {
		response.Fatal(rsp, fmt.Errorf("cannot read the composite resource: %w", err))
		return rsp, nil
	}
	composite := &observed.Resource.Unstructured

	o, err := parseOrders(readOrders(req, composite))
	if err != nil {
		response.Fatal(rsp, err)
		return rsp, nil
	}
	if o.fail != "" {
		response.Fatal(rsp, fmt.Errorf("failure requested: %s", o.fail))
		return rsp, nil
	}

	delay := o.readyAfter - f.clock.Since(composite.GetCreationTimestamp().Time)
	if delay > 0 {
		// Crossplane is to call again when the delay is over.
		rsp = response.To(req, delay)
	}

	if err := composeObjects(req, rsp, composite, o); err != nil {
		response.Fatal(rsp, err)
		return rsp, nil
	}
	if err := answerComposite(req, rsp, composite, o, delay > 0); err != nil {
		response.Fatal(rsp, err)
	}
	return rsp, nil
}

// readOrders returns the annotations that the step of the Composition has as its input, overridden by those of the
// composite. The input is for composites that cannot have the annotations because they come from a workload cluster,
// from which the annotations are not copied. The input is {apiVersion: localfleet.masthead.dev/v1alpha1, kind: Orders,
// annotations: {...}}.
func readOrders(req *fnv1.RunFunctionRequest, composite *unstructured.Unstructured) map[string]string {
	input := &unstructured.Unstructured{Object: req.GetInput().AsMap()}
	orders, _, _ := unstructured.NestedStringMap(input.Object, "annotations")
	out := maps.Clone(orders)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, composite.GetAnnotations())
	return out
}

// answerComposite sets the connection details and the readiness of the composite.
func answerComposite(
	req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, composite *unstructured.Unstructured, o orders, delayed bool,
) error {
	desired, err := request.GetDesiredCompositeResource(req)
	if err != nil {
		return fmt.Errorf("cannot read the desired composite resource: %w", err)
	}
	desired.Ready = resource.ReadyTrue
	if !o.ready || delayed {
		desired.Ready = resource.ReadyFalse
	}
	if !o.withholdConnection && !delayed {
		desired.ConnectionDetails = connectionDetails(composite, o.connectionKeys)
	}
	if err := response.SetDesiredCompositeResource(rsp, desired); err != nil {
		return fmt.Errorf("cannot set the desired composite resource: %w", err)
	}
	return nil
}

// connectionDetails returns a value for each key, derived from the identity of the composite and, for the password,
// from spec.version, so that a new version means a rotated password.
func connectionDetails(composite *unstructured.Unstructured, keys []string) resource.ConnectionDetails {
	version, _, _ := unstructured.NestedString(composite.Object, "spec", "version")
	details := resource.ConnectionDetails{}
	for _, key := range keys {
		switch key {
		case "username":
			details[key] = []byte("admin")
		case "endpoint":
			details[key] = []byte(composite.GetName() + ".database.example.org:3306")
		default:
			details[key] = []byte(derive(string(composite.GetUID()), version, key))
		}
	}
	return details
}

// composeObjects adds the Secrets and ConfigMaps that were requested.
func composeObjects(
	req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, composite *unstructured.Unstructured, o orders,
) error {
	desired, err := request.GetDesiredComposedResources(req)
	if err != nil {
		return fmt.Errorf("cannot read the desired composed resources: %w", err)
	}
	namespace := composedNamespace(composite)
	if (o.secrets > 0 || o.configMaps > 0) && namespace == "" {
		return fmt.Errorf("composite %q has neither a namespace nor a claim, so that there is no namespace to compose objects in", composite.GetName())
	}
	version, _, _ := unstructured.NestedString(composite.Object, "spec", "version")

	for i := range o.secrets {
		name := fmt.Sprintf("secret-%d", i)
		object := composedObject("Secret", namespace, composite.GetName()+"-"+name)
		password := derive(string(composite.GetUID()), version, name)
		object.Object["data"] = map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(password))}
		desired[resource.Name(name)] = &resource.DesiredComposed{Resource: object, Ready: resource.ReadyTrue}
	}
	for i := range o.configMaps {
		name := fmt.Sprintf("configmap-%d", i)
		object := composedObject("ConfigMap", namespace, composite.GetName()+"-"+name)
		object.Object["data"] = map[string]any{"version": version}
		desired[resource.Name(name)] = &resource.DesiredComposed{Resource: object, Ready: resource.ReadyTrue}
	}
	if err := response.SetDesiredComposedResources(rsp, desired); err != nil {
		return fmt.Errorf("cannot set the desired composed resources: %w", err)
	}
	return nil
}

// composedNamespace is the composite's own namespace, or that of the claim of a cluster-scoped composite.
func composedNamespace(composite *unstructured.Unstructured) string {
	if namespace := composite.GetNamespace(); namespace != "" {
		return namespace
	}
	namespace, _, _ := unstructured.NestedString(composite.Object, "spec", "claimRef", "namespace")
	return namespace
}

func composedObject(kind, namespace, name string) *composed.Unstructured {
	object := composed.New()
	object.SetAPIVersion("v1")
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// derive returns a value that looks like a generated secret and is the same for the same input.
func derive(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))[:24]
}
