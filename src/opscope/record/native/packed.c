/* Looking through packed rows without letting go of the GIL: with many busy threads the writer waits
 * long for it each time, and numpy and bytes.join let go of it at every step. */
#include "native.h"

static int by_value(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static PyObject *joined(PyObject *module, PyObject *parts) {
    (void)module;
    if (!PyList_CheckExact(parts)) {
        PyErr_SetString(PyExc_TypeError, "joined() takes a list of bytes");
        return NULL;
    }
    Py_ssize_t total = 0, some = 0;
    PyObject *only = NULL;
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(parts); index++) {
        PyObject *part = PyList_GET_ITEM(parts, index);
        if (!PyBytes_CheckExact(part)) {
            PyErr_SetString(PyExc_TypeError, "joined() takes a list of bytes");
            return NULL;
        }
        if (PyBytes_GET_SIZE(part)) {
            total += PyBytes_GET_SIZE(part);
            only = part;
            some++;
        }
    }
    if (some == 1) return Py_NewRef(only);
    PyObject *whole = PyBytes_FromStringAndSize(NULL, total);
    if (!whole) return NULL;
    char *at = PyBytes_AS_STRING(whole);
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(parts); index++) {
        PyObject *part = PyList_GET_ITEM(parts, index);
        memcpy(at, PyBytes_AS_STRING(part), (size_t)PyBytes_GET_SIZE(part));
        at += PyBytes_GET_SIZE(part);
    }
    return whole;
}

/* The rows of a bytes object; they may stand anywhere in memory, so they are copied out. */
static Py_ssize_t rows_in(PyObject *packed) {
    if (PyBytes_CheckExact(packed)) return PyBytes_GET_SIZE(packed) / (Py_ssize_t)sizeof(Span);
    PyErr_SetString(PyExc_TypeError, "packed rows are bytes");
    return -1;
}

static int64_t id_at(PyObject *packed, Py_ssize_t index) {
    int64_t id;
    memcpy(&id, PyBytes_AS_STRING(packed) + index * (Py_ssize_t)sizeof(Span), sizeof id);
    return id;
}

static PyObject *newest(PyObject *module, PyObject *packed) {
    (void)module;
    Py_ssize_t count = rows_in(packed);
    if (count < 0) return NULL;
    int64_t most = 0;
    for (Py_ssize_t index = 0; index < count; index++) {
        int64_t id = id_at(packed, index);
        if (id > most) most = id;
    }
    return PyLong_FromLongLong(most);
}

static PyObject *among(PyObject *module, PyObject *args) {
    PyObject *wanted, *packed, *found = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O:among", &PyList_Type, &wanted, &packed)) return NULL;
    Py_ssize_t rows = rows_in(packed), count = PyList_GET_SIZE(wanted);
    if (rows < 0) return NULL;
    int64_t *ids = PyMem_New(int64_t, count ? (size_t)count : 1);
    if (!ids) return PyErr_NoMemory();
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *id = PyList_GET_ITEM(wanted, index);
        /* Only whole numbers: nothing may run here that changes the list. */
        if (!PyLong_Check(id) || to_int64(id, &ids[index])) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "ids are integers");
            goto done;
        }
    }
    found = PyList_New(0);
    if (!found || !count) goto done;
    qsort(ids, (size_t)count, sizeof *ids, by_value);
    for (Py_ssize_t index = 0; index < rows; index++) {
        int64_t id = id_at(packed, index);
        if (id < ids[0] || id > ids[count - 1]) continue;
        if (!bsearch(&id, ids, (size_t)count, sizeof *ids, by_value)) continue;
        PyObject *number = PyLong_FromLongLong(id);
        int failed = !number || PyList_Append(found, number);
        Py_XDECREF(number);
        if (failed) {
            Py_CLEAR(found);
            goto done;
        }
    }
done:
    PyMem_Free(ids);
    return found;
}

PyMethodDef packed_functions[] = {
    {"joined", joined, METH_O, "The parts of a list in one."},
    {"newest", newest, METH_O, "The largest id among packed rows; 0 where there are none."},
    {"among", among, METH_VARARGS, "Those of these ids that are among packed rows."},
    {NULL, NULL, 0, NULL},
};
