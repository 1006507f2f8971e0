"""Decorators by which a script says which of its functions are what."""


class Register(dict):
    """Functions by name: @register("name") or @register.register("name")."""

    def register(self, name):
        if callable(name):  # used without parentheses
            self[name.__name__] = name
            return name

        def keep(function):
            self[name] = function
            return function

        return keep

    __call__ = register


onnx_infer_func = Register()
pytorch_model = Register()
