package kit_test

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const chart = root + "/deploy/helm/assay"

// render renders the chart with Helm's own engine, as `helm template live --namespace shop` does. The
// values are those of values.yaml, changed by set.
func render(t *testing.T, set func(values map[string]any)) (map[string]string, error) {
	t.Helper()
	loaded, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.Validate(); err != nil {
		t.Error(err)
	}
	set(loaded.Values)
	options := chartutil.ReleaseOptions{Name: "live", Namespace: "shop", Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(loaded, nil, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	strict := engine.Engine{Strict: true} // a value that values.yaml lacks is an error
	return strict.Render(loaded, values)
}

// objects decodes rendered objects strictly as Kubernetes' own types: an unknown or misplaced field
// is an error.
func objects(t *testing.T, rendered map[string]string) map[string]any {
	t.Helper()
	kinds := map[string]any{
		"apps/v1 StatefulSet": appsv1.StatefulSet{}, "v1 Service": corev1.Service{},
		"policy/v1 PodDisruptionBudget": policyv1.PodDisruptionBudget{}, "autoscaling/v2 HorizontalPodAutoscaler": autoscalingv2.HorizontalPodAutoscaler{},
	}
	found := map[string]any{}
	for file, text := range rendered {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			var head struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
				Metadata   struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatalf("%s: got error %v, want none\n%s", file, err, document)
			}
			kind, ok := kinds[head.APIVersion+" "+head.Kind]
			if !ok {
				t.Fatalf("%s has an unknown kind: %s %s", file, head.APIVersion, head.Kind)
			}
			object := reflect.New(reflect.TypeOf(kind)).Interface()
			if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
				t.Fatalf("%s: got error %v, want none\n%s", file, err, document)
			}
			found[head.Kind+" "+head.Metadata.Name] = object
		}
	}
	return found
}

func TestChart_RendersOneInstanceOnSQLite(t *testing.T) {
	rendered, err := render(t, func(v map[string]any) { v["secret"] = "assay" })
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, rendered)
	set, ok := all["StatefulSet live-assay"].(*appsv1.StatefulSet)
	if !ok || len(all) != 3 || *set.Spec.Replicas != 1 {
		t.Fatalf("got the objects %v, want 3 with one replica", all)
	}
	checkPod(t, set)
	service, ok := all["Service live-assay"].(*corev1.Service)
	if !ok || !reflect.DeepEqual(service.Spec.Selector, set.Spec.Selector.MatchLabels) || service.Spec.Ports[0].TargetPort.StrVal != "http" {
		t.Errorf("got the service %+v, want the labels of the set and the port http", service)
	}
	if _, ok := all["Service "+set.Spec.ServiceName]; !ok {
		t.Errorf("the service %s of the set is missing", set.Spec.ServiceName)
	}
}

func TestChart_RendersInstancesOnPostgreSQL(t *testing.T) {
	rendered, err := render(t, func(v map[string]any) {
		v["secret"], v["postgresql"], v["replicas"] = "assay", true, 3
		v["autoscaling"] = map[string]any{"enabled": true, "minReplicas": 2, "maxReplicas": 4, "targetCPUUtilizationPercentage": 70}
		v["nodeSelector"], v["storage"] = map[string]any{"disk": "ssd"}, map[string]any{"size": "5Gi", "className": "fast"}
	})
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, rendered)
	set, ok := all["StatefulSet live-assay"].(*appsv1.StatefulSet)
	if !ok {
		t.Fatalf("got the objects %v, want a StatefulSet", all)
	}
	checkPod(t, set)
	budget, ok := all["PodDisruptionBudget live-assay"].(*policyv1.PodDisruptionBudget)
	if !ok || !reflect.DeepEqual(budget.Spec.Selector, set.Spec.Selector) || budget.Spec.MaxUnavailable.IntVal != 1 {
		t.Errorf("got the disruption budget %+v, want one unavailable pod of the set", budget)
	}
	scaler, ok := all["HorizontalPodAutoscaler live-assay"].(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok || scaler.Spec.ScaleTargetRef.Name != set.Name || scaler.Spec.ScaleTargetRef.Kind != set.Kind || set.Spec.Replicas != nil {
		t.Errorf("got the scaler %+v, replicas %v, want a scaler of the set, and no replicas in the set", scaler, set.Spec.Replicas)
	}
	if set.Spec.Template.Spec.NodeSelector["disk"] != "ssd" || *set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName != "fast" {
		t.Errorf("got the set %+v, want the node selector and the storage class of the values", set.Spec)
	}
}

// checkPod checks probes, mounts, settings and the security context.
func checkPod(t *testing.T, set *appsv1.StatefulSet) {
	t.Helper()
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	if c.StartupProbe.HTTPGet.Path != "/api/health" || c.ReadinessProbe.HTTPGet.Path != "/api/health" || c.LivenessProbe.TCPSocket == nil {
		t.Errorf("got the probes %+v %+v %+v, want two of /api/health and a TCP one", c.StartupProbe, c.ReadinessProbe, c.LivenessProbe)
	}
	s, p := c.SecurityContext, pod.SecurityContext
	if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || fmt.Sprint(s.Capabilities.Drop) != "[ALL]" || !*p.RunAsNonRoot || *p.RunAsUser != 65532 || *p.FSGroup != 65532 {
		t.Errorf("got the security contexts %+v and %+v, want a read-only container without root and capabilities", s, p)
	}
	if c.EnvFrom[0].SecretRef.Name != "assay" || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("got the secret %v, resources %v, want the secret assay and a limit of memory", c.EnvFrom, c.Resources)
	}
	known := settings(t)
	for _, e := range c.Env {
		if !known[e.Name] {
			t.Errorf("%s is not a setting of Assay", e.Name)
		}
	}
	for label, value := range set.Spec.Selector.MatchLabels {
		if set.Spec.Template.Labels[label] != value {
			t.Errorf("the pod has no label %s=%s", label, value)
		}
	}
	volumes := map[string]bool{set.Spec.VolumeClaimTemplates[0].Name: true}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("the mounted volume %s does not exist", m.Name)
		}
	}
}

func TestChart_RefusesValuesThatCannotWork(t *testing.T) {
	for want, set := range map[string]func(map[string]any){
		"secret is empty":        func(map[string]any) {},
		"several instances need": func(v map[string]any) { v["secret"], v["replicas"] = "assay", 2 },
	} {
		if _, err := render(t, set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// settings returns the names of all settings, from the reference of the configuration.
func settings(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range bytes.Lines(page) {
		if name, ok := bytes.CutPrefix(line, []byte("| `")); ok {
			name, _, _ = bytes.Cut(name, []byte("`"))
			found[string(name)] = true
		}
	}
	if len(found) < 30 {
		t.Fatalf("found %d settings, want at least 30", len(found))
	}
	return found
}
