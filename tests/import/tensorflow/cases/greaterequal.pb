
7
x0Placeholder*
dtype0*
shape:
/
x1Placeholder*
dtype0*
shape:
-
GreaterEqualGreaterEqualx0x1*
T0
+
IdentityIdentityGreaterEqual*
T0
