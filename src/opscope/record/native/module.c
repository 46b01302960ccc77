/* The module: its types, and where the Python side hands over what the fast paths look at. */
#include "native.h"

State state;

PyObject *native_now(PyObject *module, PyObject *nothing);

int take_arguments(const char *function, PyObject *const *args, Py_ssize_t positional,
                   PyObject *by_name, PyObject **names, Py_ssize_t known, Py_ssize_t required,
                   PyObject **found) {
    Py_ssize_t count = PyVectorcall_NARGS((size_t)positional);
    Py_ssize_t more = by_name ? PyTuple_GET_SIZE(by_name) : 0;
    if (count > known) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zd arguments", function, known);
        return -1;
    }
    for (Py_ssize_t index = 0; index < count; index++) found[index] = args[index];
    for (Py_ssize_t index = 0; index < more; index++) {
        PyObject *name = PyTuple_GET_ITEM(by_name, index);
        Py_ssize_t at = 0;
        while (at < known && names[at] != name) at++; /* names in code are interned */
        if (at == known)
            for (at = 0; at < known && PyUnicode_Compare(names[at], name); at++) {
            }
        if (at == known || found[at]) {
            PyErr_Format(PyExc_TypeError, "%s() was given %U %s", function, name,
                         at == known ? "and does not know it" : "twice");
            return -1;
        }
        found[at] = args[count + index];
    }
    for (Py_ssize_t index = 0; index < required; index++)
        if (!found[index]) {
            PyErr_Format(PyExc_TypeError, "%s() needs an argument: %U", function, names[index]);
            return -1;
        }
    return 0;
}

static PyObject *bind(PyObject *module, PyObject *args, PyObject *by_name) {
    static char *names[] = {"current", "adopted", "waiting", "zero", "enter", "leave",
                            "find", "link", "open", "pull", NULL};
    PyObject *given[10];
    if (!PyArg_ParseTupleAndKeywords(args, by_name, "OO!O!OOOOOOO:bind", names, &given[0],
                                     &PyDict_Type, &given[1], &PySet_Type, &given[2], &given[3],
                                     &given[4], &given[5], &given[6], &given[7], &given[8],
                                     &given[9]))
        return NULL;
    if (!PyContextVar_CheckExact(given[0])) {
        PyErr_SetString(PyExc_TypeError, "bind() needs the ContextVar of the current call");
        return NULL;
    }
    PyObject **places[10] = {&state.current, &state.adopted, &state.waiting, &state.zero,
                             &state.enter, &state.leave, &state.find, &state.link,
                             &state.open, &state.pull};
    for (int index = 0; index < 10; index++) {
        Py_INCREF(given[index]);
        Py_XSETREF(*places[index], given[index]);
    }
    /* Only now: they look at what was just given. */
    if (PyModule_AddFunctions(module, current_functions) ||
        PyModule_AddFunctions(module, frame_functions))
        return NULL;
    Py_RETURN_NONE;
}

static int text(PyObject **place, const char *content) {
    if (!*place) *place = PyUnicode_InternFromString(content);
    return *place ? 0 : -1;
}

static int add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **place) {
    /* Types are made once in a process: a second import of the module gets the same. */
    if (!*place && !(*place = (PyTypeObject *)PyType_FromSpec(spec))) return -1;
    return PyModule_AddObjectRef(module, name, (PyObject *)*place);
}

static PyMethodDef functions[] = {
    {"bind", (PyCFunction)(void (*)(void))bind, METH_VARARGS | METH_KEYWORDS,
     "Take the objects and rarely needed functions of `scope`. Before anything else."},
    {"now", native_now, METH_NOARGS, "What the system's clock says, in ns."},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module) {
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "the native recorder works in the main interpreter only");
        return -1;
    }
    if (text(&state.wake, "_wake_writer") || text(&state.new_here, "_known_here") ||
        text(&state.slow_cpu, "_counted_cpu") || text(&state.unfit, "_does_not_fit") ||
        text(&state.name, "name") || text(&state.recorder, "recorder") ||
        (!state.no_frames && !(state.no_frames = PyTuple_New(0))))
        return -1;
    if (add_type(module, "Row", &row_spec, &state.Row) ||
        add_type(module, "Buffer", &buffer_spec, &state.Buffer) ||
        add_type(module, "Core", &core_spec, &state.Core) ||
        add_type(module, "Frame", &frame_spec, &state.Frame) ||
        add_type(module, "Operators", &operators_spec, &state.Operators))
        return -1;
    if (PyModule_AddIntConstant(module, "FACE", FACE))
        return -1;
    return PyModule_AddFunctions(module, packed_functions);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "The hot half of the recorder in C; `opscope.record` says who may use it.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
