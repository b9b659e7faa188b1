"""The type stubs, python/miniqat/__init__.pyi, against the module: names, arguments, defaults, results, docstrings."""

import ast
import pathlib
import re
import sys
import unittest

import miniqat

STUBS = ast.parse((pathlib.Path(miniqat.__file__).parent / "__init__.pyi").read_text())
# What pybind11 and Python give every class.
INHERITED = {"__doc__", "__module__", "__weakref__"}


def functions(body):
    """The definitions in a class or module, by name; a property's setter and overloads share one."""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def decorators(node):
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def arguments(node):
    """(names, defaults by name, name of **) of a definition. A default that is no literal is `...`."""
    names = [argument.arg for argument in node.args.args]
    given = node.args.defaults
    defaults = {name: ast.literal_eval(default) for name, default in zip(names[len(names) - len(given):], given)}
    return names, defaults, node.args.kwarg and node.args.kwarg.arg


def signature_in(docstring):
    """The definition in the first line of pybind11's docstring; objects that are no literals become `...`."""
    line = re.sub(r"= \w+\(\)", "= ...", docstring.split("\n")[0])
    return ast.parse(f"def {line}: ...").body[0]


def returned_by(member):
    """The type after the arrow of pybind11's docstring, as the stubs write it without what is inside."""
    docstring = member.fget.__doc__ if isinstance(member, property) else member.__doc__
    whole = docstring.split("\n")[0].rpartition("-> ")[2].partition("[")[0]
    name = whole.split(".")[-1]
    return {"ndarray": "NDArray", "List": "list"}.get(name, name)


def text_of(member):
    """The docstring on one line, without pybind11's signature."""
    text = member.__doc__ or ""
    if not isinstance(member, (type, property)) and "->" in text.split("\n")[0]:
        text = text.partition("\n\n")[2]
    return " ".join(text.split())


class Stubs(unittest.TestCase):
    def test_module_has_the_names(self):
        stubs = {node.name for node in STUBS.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        module = {name for name in vars(miniqat) if not name.startswith("_")}
        self.assertEqual(stubs, module)
        self.assertIsInstance(miniqat.__version__, str)

    def test_classes_have_the_members(self):
        for stub, of in classes():
            with self.subTest(of.__name__):
                own = {name for name in vars(of) if name not in INHERITED and "pybind11" not in name}
                if isinstance(vars(of).get("__init__"), type(object.__init__)):  # no constructor in Python
                    own.remove("__init__")
                self.assertEqual(set(functions(stub.body)), own)
                self.assertEqual(ast.unparse(stub.bases[0]) if stub.bases else "pybind11_object", of.__base__.__name__)

    def test_properties_are_properties(self):
        for stub, of in classes():
            for name, definitions in functions(stub.body).items():
                with self.subTest(f"{of.__name__}.{name}"):
                    member = vars(of)[name]
                    marks = set().union(*map(decorators, definitions))
                    self.assertEqual("property" in marks, isinstance(member, property))
                    self.assertEqual("staticmethod" in marks, isinstance(member, staticmethod))
                    if isinstance(member, property):
                        self.assertEqual(f"{name}.setter" in marks, member.fset is not None)

    def test_arguments_and_defaults(self):
        for name, definitions, member in members():
            if isinstance(member, property):
                continue
            names, defaults, keywords = arguments(signature_in(member.__doc__))
            for definition in definitions:
                with self.subTest(name):
                    stub_names, stub_defaults, stub_keywords = arguments(definition)
                    self.assertEqual((stub_names, stub_keywords), (names, keywords))
                    self.assertEqual(stub_defaults, defaults)

    def test_returned_types(self):
        for name, definitions, member in members():
            expected = returned_by(member)
            if expected == "object":  # run() and __iter__()
                continue
            returns = ast.unparse(definitions[0].returns).partition("[")[0].replace("_Ranges", "dict")
            with self.subTest(name):
                self.assertEqual(returns, expected)

    def test_help_names_what_users_know(self):
        for name, _, member in members():
            line = ((member.fget if isinstance(member, property) else member).__doc__ or "").split("\n")[0]
            with self.subTest(name):
                self.assertNotRegex(line, r"handle|Handle|::|_core| at 0x")
        self.assertEqual({of.__module__ for _, of in classes()}, {"miniqat"})
        self.assertEqual(miniqat._core.__name__, "miniqat._core")

    def test_docstrings_are_the_modules(self):
        self.assertIn(" ".join(ast.get_docstring(STUBS).split()), " ".join(miniqat.__doc__.split()))
        documented = [(stub.name, [stub], of) for stub, of in classes()] + list(members())
        for name, definitions, member in documented:
            if name.endswith(("__repr__", "__iter__", "__next__")):
                continue
            with self.subTest(name):
                stub = " ".join((ast.get_docstring(definitions[0]) or "").split())
                self.assertNotEqual(stub, "")
                self.assertEqual(stub, text_of(member))


def classes():
    """(stub, class) of each."""
    for node in STUBS.body:
        if isinstance(node, ast.ClassDef) and hasattr(miniqat, node.name):
            yield node, getattr(miniqat, node.name)


def members():
    """(name, stub's definitions, function or property) of each function of the module and member of a class."""
    for name, definitions in functions(STUBS.body).items():
        if hasattr(miniqat, name):
            yield name, definitions, getattr(miniqat, name)
    for stub, of in classes():
        for name, definitions in functions(stub.body).items():
            if name in vars(of):
                yield f"{of.__name__}.{name}", definitions, getattr(of, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
